/** An alert: something that should not be, which a rule finds again as long as it lasts. */
import { id, instant, record, text } from '../fields.ts';
import { resource } from '../resource.ts';

export const alert = resource('Alert', {
  id: id('alr'),
  rule: text(
    'The name of a rule of alerts.rules, observer.late, operation.stuck, wallet.vanished or ' +
      'ledger.fee_rule_contradicted',
  ),
  raised_at: instant(),
  detail: record('As in its event, with the present values'),
});
