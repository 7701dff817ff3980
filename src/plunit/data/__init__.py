"""What comes from outside: tables of users, and the data set of section 5, checked before use."""
