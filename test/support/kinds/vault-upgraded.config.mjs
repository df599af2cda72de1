// @ts-check
import { values, vault } from './vault.config.mjs';

const pin = { length: 20, alphabet: '0123456789' };

/** A later release: one value more, and Secrets among the children, so that all of them are watched. */
export default { kinds: [vault({ ...values, pin }, [{ apiVersion: 'v1', kind: 'Secret' }])] };
