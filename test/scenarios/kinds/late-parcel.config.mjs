import { parcelKind } from './parcel.mjs';

// In a group of its own: its CRD comes and goes.
export default { kinds: [parcelKind({ group: 'late.scenarios.example.com' })] };
