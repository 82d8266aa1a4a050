def digit_max(a, b):
    result = ''
    while a != '' and b != '':
        result = max(a[-1], b[-1]) + result
        a = a[:-1]
        b = b[:-1]
    return a + b + result
