/** What holds of every kind of broker, of NATS. */
import { describeBroker } from './every-broker.ts';
import { startNats } from './nats.ts';

describeBroker('NATS', startNats, { secure: true });
