"""Workers in processes of their own, which tests kill, stop or give a wrong clock."""
