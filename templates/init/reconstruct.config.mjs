import { kind as gizmoKind } from './src/gizmo/kind.ts';

export default { builtIn: false, kinds: [gizmoKind] };
