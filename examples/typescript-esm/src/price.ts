import { current } from 'light-trace'

/** Deep in the application: it has no request and no arguments, but gets the right store, with types. */
export function price (): number {
  const customer = current()?.get('customer') // { id: number, plan: 'free' | 'pro' } | undefined
  return customer?.plan === 'pro' ? 8 : 10
}
