"""Fixed noise processes on classes: schedules, the uniform process, how times are drawn. No weights here."""
