"""The choices of a user, described once."""
