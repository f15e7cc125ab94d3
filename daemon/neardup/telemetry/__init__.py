"""What the program tells others about itself: log lines, metrics, and notifications of systemd."""
