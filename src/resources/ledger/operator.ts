/** An operator, the wallet that its gives are posted from, and who decided that. */
import {
  address,
  count,
  digits,
  flag,
  id,
  instant,
  list,
  nullable,
  object,
  oneOf,
} from '../fields.ts';
import { operatorProposal } from '../operations/decision.ts';
import { resource } from '../resource.ts';

/** As many of the newest entries of an operator are searched for gives. */
export const COUNTED_MAX = 20_000;

export const operator = resource(
  'Operator',
  {
    operator_no: digits('Number of the operator, as in the path of its gives', {
      title: 'Operator',
    }),
    addr: nullable(
      address('The wallet that its gives are posted from; null: the account `operator:<number>`', {
        title: 'Pays from',
      }),
    ),
    source: nullable(
      oneOf(
        ['setting', 'mapping'],
        '`setting`: `ledger.operators` names it, which wins; `mapping`: two owners did',
        { title: 'Named by' },
      ),
    ),
    proposal: nullable(object(operatorProposal, 'The newest one')),
  },
  {
    columns: ['operator_no', 'addr', 'source'],
    filters: { proposed: flag('Only operators whose proposed wallet waits for another owner') },
  },
);

export const operatorDetail = resource('OperatorDetail', {
  ...operator.fields,
  effect: nullable(
    object(
      {
        addr: address('The wallet'),
        since: nullable(
          instant('The opening of the wallet, which includes older gives; null: it has none yet'),
        ),
        gives: count(
          `Posted gives since then, which are posted again from the wallet; of the newest ` +
            `${COUNTED_MAX} entries of the operator`,
        ),
        drifts: list(id('drf'), 'Open drifts of the wallet that equal gives of the operator'),
      },
      'What an approval of the proposal that waits does, or of that of a dry run',
    ),
  ),
});
