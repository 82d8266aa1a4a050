def multiply(a, b):
    result = 0
    shift = ''
    while a != '':
        product = int(a[-1]) * int(b)
        result = result + int(str(product) + shift)
        shift = shift + '0'
        a = a[:-1]
    return str(result)
