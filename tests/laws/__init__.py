"""Laws that hold for every building block, and the table of building blocks that they hold for."""
