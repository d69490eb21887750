"""dp_accounting's events and accountants."""
