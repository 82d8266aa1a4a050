def maximum(a, b):
    n = len(a)
    m = len(b)
    if n > m:
        return a
    if n < m:
        return b
    i = 0
    while i < n:
        if a[i] > b[i]:
            return a
        if a[i] < b[i]:
            return b
        i = i + 1
    return b
