def get_digit(a, i):
    while i > 0:
        a = a[1:]
        i = i - 1
    return a[0]
