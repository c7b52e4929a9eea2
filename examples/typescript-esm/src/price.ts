import { current } from 'light-trace'

/** Deep in the application: no request, no argument, the right store, with its types. */
export function price (): number {
  const customer = current()?.get('customer') // { id: number, plan: 'free' | 'pro' } | undefined
  return customer?.plan === 'pro' ? 8 : 10
}
