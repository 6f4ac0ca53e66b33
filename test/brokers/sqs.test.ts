/** What holds of every kind of broker, of SQS. */
import { describeBroker } from './every-broker.ts';
import { startSqs } from './sqs.ts';

describeBroker('SQS', startSqs, { failure: 'A pause' });
