def add_fraction(a, b):
    p = a.split('/')
    q = b.split('/')
    left = int(multiply(p[0], q[1]))
    right = int(multiply(q[0], p[1]))
    numerator = left + right
    denominator = int(multiply(p[1], q[1]))
    return reduce(numerator, denominator)

def multiply(a, b):
    result = 0
    shift = ''
    while a != '':
        product = int(a[-1]) * int(b)
        result = result + int(str(product) + shift)
        shift = shift + '0'
        a = a[:-1]
    return str(result)

def reduce(numerator, denominator):
    x = numerator
    y = denominator
    while y != 0:
        remainder = x % y
        x = y
        y = remainder
    numerator = numerator // x
    denominator = denominator // x
    return str(numerator) + '/' + str(denominator)
