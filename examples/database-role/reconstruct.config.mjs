import { database, role } from './kinds.ts';

export default { kinds: [role, database] };
