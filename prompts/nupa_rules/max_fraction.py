def max_fraction(a, b):
    p = a.split('/')
    q = b.split('/')
    left = int(multiply(p[0], q[1]))
    right = int(multiply(q[0], p[1]))
    if left > right:
        return a
    return b

def multiply(a, b):
    result = 0
    shift = ''
    while a != '':
        product = int(a[-1]) * int(b)
        result = result + int(str(product) + shift)
        shift = shift + '0'
        a = a[:-1]
    return str(result)
