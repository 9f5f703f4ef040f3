"""Assignments: released, examined before they are handed in, graded in a sandbox."""
