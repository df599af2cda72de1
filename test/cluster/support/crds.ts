export { installCrd } from '../../../src/testing/install-crd.js';
