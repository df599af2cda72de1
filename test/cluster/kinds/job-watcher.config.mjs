// @ts-check
import { jobWatcher } from '../../../lib/kinds/job-watcher/kind.js';

export default { kinds: [jobWatcher] };
