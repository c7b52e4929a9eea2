// tsc checks what is imported: the examples in TypeScript have the types that they claim.
import '../../examples/typed-store.mjs'
