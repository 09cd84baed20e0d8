// Linked with the whole of one library and only its declared dependencies:
// that it links is the test (cmake/penstock_targets.cmake).
int main() { return 0; }
