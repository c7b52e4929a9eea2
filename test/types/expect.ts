// Assertions for tsc, which fails if one does not hold. Lines that must be rejected follow a `// @ts-expect-error`, which fails if there is
// no error.

// Neither `any` nor a type that is merely assignable counts as the same.
type Same<T, U> = (<V>() => V extends T ? 1 : 2) extends (<V>() => V extends U ? 1 : 2) ? true : false

export declare function expectTypeOf<T> (value: T): { toBe: <U>(...expectedAndActual: Same<T, U> extends true ? [] : [U, T]) => void }
export declare function expectAssignable<T> (value: T): void
