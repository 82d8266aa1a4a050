def add(a, b):
    result = ''
    carry = 0
    while a != '' or b != '':
        total = int('0' + a[-3:]) + int('0' + b[-3:]) + carry
        result = str(total % 1000).zfill(3) + result
        carry = total // 1000
        a = a[:-3]
        b = b[:-3]
    result = (str(carry) + result).lstrip('0')
    if result == '':
        result = '0'
    return result
