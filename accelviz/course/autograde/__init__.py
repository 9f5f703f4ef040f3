"""Assignments: release, examination of submissions, grading in a sandbox, leaderboard."""
