// A reporter for node --test: one line of JSON a test, with its file, the names of the tests around it, and whether it passed.

export default async function * reporter (source) {
  const around = new Map() // file → the names of the tests that are open in it
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
