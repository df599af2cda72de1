export { accountKubeconfig, accountToken, tokenOf } from '../../../src/testing/account.js';
