import { database, role } from './kinds.mjs';

export default { kinds: [role, database] };
