// @ts-check
import { values, vault } from './vault.config.mjs';

const settings = { apiVersion: 'v1', kind: 'ConfigMap', name: () => 'settings' };

/** A Vault whose Pods are also replaced when a ConfigMap of its namespace changes. */
export default { kinds: [vault(values, [], { settings })] };
