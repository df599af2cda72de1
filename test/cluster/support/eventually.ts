export * from '../../../src/testing/eventually.js';
