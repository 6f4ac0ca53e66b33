/** What requests name: the contract, the operator wallet and the reason of transactions. */
import type { Service } from './service.ts';
import { NotChecked } from './statement.ts';

/** The reasonType of every transaction; a run may name the one that its service allows. */
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

/** What a transaction moves, in service tokens; the minimum of a service is not shown. */
export const unit = ({ options }: Service) => Number(options.amount ?? 1);

/**
 * The text of a payment's body with the amount as it is written here, for numbers that no
 * JavaScript number holds.
 */
export function paymentText(service: Service, fields: object, amount: bigint | string): string {
  const rest = JSON.stringify({ ...fields, feeAmount: 0, reasonType: reason(service) });
  return `{"amount":${amount},${rest.slice(1)}`;
}
