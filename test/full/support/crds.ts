export { installCrd } from '../../../src/testing/account.js';
