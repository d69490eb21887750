"""What is promised: pure, approximate, zero-concentrated, Renyi and Gaussian differential privacy, and the way between them."""
