// Assertions for tsc, which fails where one does not hold. What must be refused stands below `// @ts-expect-error`, which fails where
// nothing is wrong.

// Neither `any` nor a type that is merely assignable is the same.
type Same<T, U> = (<V>() => V extends T ? 1 : 2) extends (<V>() => V extends U ? 1 : 2) ? true : false

export declare function expectTypeOf<T> (value: T): { toBe: <U>(...expectedAndActual: Same<T, U> extends true ? [] : [U, T]) => void }
export declare function expectAssignable<T> (value: T): void
