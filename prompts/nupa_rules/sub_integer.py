def sub(a, b):
    result = ''
    borrow = 0
    while a != '':
        difference = int('0' + a[-3:]) - int('0' + b[-3:]) - borrow
        borrow = 0
        if difference < 0:
            difference = difference + 1000
            borrow = 1
        result = str(difference).zfill(3) + result
        a = a[:-3]
        b = b[:-3]
    result = result.lstrip('0')
    if result == '':
        result = '0'
    return result
