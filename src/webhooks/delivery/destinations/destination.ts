/** What every kind of destination has in common: it sends a delivery, and says how that ended. */
import type { Instant } from '../../../kernel/clock.ts';
import type { AttemptResponse } from '../http/attempt.ts';
import type { Job } from '../queue.ts';

export interface Destination {
  /**
   * Sends the event of a delivery within the deadline of an attempt. What goes wrong on the way is
   * a response with an error code.
   * @throws Failure `url_refused`, `decryption_failed` when nothing could be prepared
   */
  send(job: Job, startedAt: Instant): Promise<AttemptResponse>;
  /** Ends every send in flight with the error `interrupted`. */
  interrupt(): void;
  close(): Promise<void>;
}
