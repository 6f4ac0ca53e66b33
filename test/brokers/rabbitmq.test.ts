/** What holds of every kind of broker, of RabbitMQ. */
import { describeBroker } from './every-broker.ts';
import { startRabbitmq } from './rabbitmq.ts';

describeBroker('RabbitMQ', startRabbitmq, { secure: true });
