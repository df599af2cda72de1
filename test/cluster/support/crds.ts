export * from '../../../src/testing/install-crd.js';
