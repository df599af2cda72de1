// @ts-check
import { jobWatcher } from '../../../lib/kinds/job-watcher/kind.js';
import { streamIngress } from '../../../lib/kinds/stream-ingress/kind.js';

export default { kinds: [jobWatcher, streamIngress] };
