import { parcelKind } from './parcel.mjs';

export default { kinds: [parcelKind()] };
