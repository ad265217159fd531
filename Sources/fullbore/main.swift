print("fullbore")
