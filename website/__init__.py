"""What the site needs and the package does not: pictures of the book, grids of certified values, hooks of the build."""
