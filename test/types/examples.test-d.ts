// tsd compiles what its files import: the examples in TypeScript have the types that they claim.
import '../../examples/typed-store.mjs'
