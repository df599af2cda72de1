import { scheduledTask } from './kind.mjs';

export default { kinds: [scheduledTask] };
