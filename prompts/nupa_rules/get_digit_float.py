def get_digit_float(a, i):
    a = a.replace('.', '')
    while i > 0:
        a = a[1:]
        i = i - 1
    return a[0]
