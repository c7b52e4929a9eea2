// tsc checks what is imported: the TypeScript examples have the types that they claim.
import '../../examples/typed-store.mjs'
