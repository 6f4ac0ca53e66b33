/** The contract, operator wallet, reason and amount that requests use. */

import { NotChecked } from '../statement.ts';
import type { Service } from './service.ts';

export const reason = ({ options }: Service) => options.reason ?? 'contract';

export async function contract(service: Service): Promise<bigint> {
  const { contract: named } = service.options;
  if (named !== undefined) return BigInt(named);
  if (!service.controlled) throw new NotChecked('needs --contract');
  const { contracts } = await service.once('state', () => service.control.state());
  const own = contracts.find((each) => each.own);
  if (!own) throw new NotChecked('the service has no contract of this client');
  return BigInt(own.contract_id);
}

export async function operator(service: Service): Promise<string> {
  const { operator: named } = service.options;
  if (named !== undefined) return named;
  if (!service.controlled) throw new NotChecked('needs --operator');
  const { operators } = await service.once('state', () => service.control.state());
  const rich = operators.toSorted((a, b) => (BigInt(b.balance) > BigInt(a.balance) ? 1 : -1))[0];
  if (!rich) throw new NotChecked('the service has no operator wallet');
  return rich.operation_no;
}

/** The service tokens that a transaction moves; the minimum of a service is not shown. */
export const unit = ({ options }: Service) => Number(options.amount ?? 1);

/** A payment's body with the amount as literal text, for numbers beyond JavaScript's range. */
export function paymentText(service: Service, fields: object, amount: bigint | string): string {
  const rest = JSON.stringify({ ...fields, feeAmount: 0, reasonType: reason(service) });
  return `{"amount":${amount},${rest.slice(1)}`;
}
