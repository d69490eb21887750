"""What is promised: pure, approximate, concentrated, Renyi and Gaussian privacy, and the way between them."""
