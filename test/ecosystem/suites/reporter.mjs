// A reporter for node --test. It prints one line of JSON per test, with its file, the names of the enclosing tests, and whether it passed.

export default async function * reporter (source) {
  const around = new Map() // file → the names of its running tests
  for await (const { type, data } of source) {
    const names = around.get(data?.file) ?? []
    if (type === 'test:start') {
      names.length = data.nesting
      names[data.nesting] = data.name
      around.set(data.file, names)
    } else if (type === 'test:pass' || type === 'test:fail') {
      yield JSON.stringify({ isOk: type === 'test:pass', file: data.file, name: [...names.slice(0, data.nesting), data.name].join(' > ') }) + '\n'
    }
  }
}
