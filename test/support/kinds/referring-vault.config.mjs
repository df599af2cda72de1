// @ts-check
import { values, vault } from './vault.config.mjs';

const settings = { apiVersion: 'v1', kind: 'ConfigMap', name: () => 'settings' };
const tls = { apiVersion: 'v1', kind: 'Secret', name: () => 'tls' };

/** A Vault whose Pods are also replaced when a ConfigMap or a Secret of its namespace changes. */
export default { kinds: [vault(values, [], { settings, tls })] };
